"""An API server of Kubernetes that has one Secret, whatever its name, of the release run-1: as much of one as
`helm template --dry-run=server` asks.

one_secret.py DATA   the Secret's data, as JSON; prints the server's URL
"""

import http.server
import json
import sys

KINDS = {
    "v1": ["ConfigMap", "Pod", "Secret", "Service", "ServiceAccount"],
    "apps/v1": ["StatefulSet"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["PodDisruptionBudget"],
}


def group(version):
    versions = {"groupVersion": version, "version": version.split("/")[1]}
    return {"name": version.split("/")[0], "versions": [versions], "preferredVersion": versions}


def resource(kind):
    plural = kind.lower()[:-1] + "ies" if kind.endswith("y") else kind.lower() + "s"
    return {"name": plural, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": ["get"]}


ANSWERS = {
    "/version": {"major": "1", "minor": "33", "gitVersion": "v1.33.0"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group(version) for version in KINDS if "/" in version]},
}
for version, kinds in KINDS.items():
    ANSWERS[("/apis/" if "/" in version else "/api/") + version] = {
        "kind": "APIResourceList",
        "groupVersion": version,
        "resources": [resource(kind) for kind in kinds],
    }


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        answer = ANSWERS.get(path)
        if "/secrets/" in path:
            owner = {"meta.helm.sh/release-name": "run-1", "meta.helm.sh/release-namespace": "chorus"}
            labels = {"app.kubernetes.io/managed-by": "Helm"}
            metadata = {"name": path.split("/")[-1], "labels": labels, "annotations": owner}
            answer = {"kind": "Secret", "apiVersion": "v1", "metadata": metadata, "data": json.loads(sys.argv[1])}
        body = json.dumps(answer or {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
