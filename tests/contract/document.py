"""docs/openapi.json, and whether an answer is as it says."""

import json
import re

import jsonschema


class Document:
    def __init__(self, text):
        self.all = json.loads(text)
        self.operations = {}  # (service, method, path) -> operation
        for path, methods in self.all["paths"].items():
            for method, operation in methods.items():
                for service in operation["tags"]:
                    self.operations[service, method.upper(), path] = operation

    def route_patterns(self, service):
        """{(method, path, role)} as GET /v1 of the service lists them."""
        routes = set()
        for (of, method, path), operation in self.operations.items():
            if of != service:
                continue
            for parameter in operation["parameters"]:
                if parameter.get("x-takes-slashes"):
                    path = path.replace("{%s}" % parameter["name"], "{%s...}" % parameter["name"])
            routes.add((method, path, operation["x-role"][service]))
        return routes

    def pairs(self):
        """{(service, operationId, status)}: everything that may be answered."""
        return {
            (service, operation["operationId"], int(status))
            for (service, _, _), operation in self.operations.items()
            for status, response in operation["responses"].items()
            if service in response.get("x-services", [service])
        }

    def find(self, service, method, path):
        """The operation of a request: the one with the most literal path, as the router does."""
        method = "GET" if method == "HEAD" else method
        path = path.split("?")[0]
        best = None
        for (of, known_method, pattern), operation in self.operations.items():
            if of != service or known_method != method:
                continue
            slashes = {p["name"] for p in operation["parameters"] if p.get("x-takes-slashes")}
            regex = re.sub(
                r"\\\{(\w+)\\\}", lambda m: ".+" if m[1] in slashes else "[^/]+", re.escape(pattern).replace(r"\-", "-")
            )
            if re.fullmatch(regex, path) and (best is None or pattern.count("{") < best.count("{")):
                best = pattern
        if best is None:
            raise KeyError(f"the document has no {method} {path} of a {service}")
        return best, self.operations[service, method, best]

    def validate(self, schema, instance):
        schema = {**schema, "components": self.all["components"]}
        jsonschema.Draft202012Validator(schema).validate(instance)

    def check(self, service, method, path, answer):
        """Raises what is wrong with the answer; otherwise gives its pair."""
        pattern, operation = self.find(service, method, path)
        response = operation["responses"].get(str(answer.status))
        if response is None or service not in response.get("x-services", [service]):
            raise ValueError(f"status {answer.status} is not one of {sorted(operation['responses'])}")
        pair = service, operation["operationId"], answer.status
        for name, header in response.get("headers", {}).items():
            value = answer.headers.get(name)
            if value is None and header.get("required"):
                raise ValueError(f"there is no {name}")
            if value is not None:
                self.validate(header["schema"], header_value(value, header["schema"]["type"]))
        content = response.get("content", {})
        if method == "HEAD" or not answer.body:
            if content and method != "HEAD" and answer.media() not in content and answer.media() != "":
                raise ValueError(f"{answer.media()} is not one of {sorted(content)}")
            return pair
        if answer.media() not in content:
            raise ValueError(f"{answer.media() or 'a body without a type'} is not one of {sorted(content)}")
        schema = content[answer.media()].get("schema", {})
        if answer.media().endswith("json"):
            mine = [one for one in schema.get("anyOf", [schema]) if service in one.get("x-services", [service])]
            self.validate(mine[0], answer.json())
        if answer.media() == "application/problem+json":
            self.check_problem(answer)
        return pair

    @staticmethod
    def check_problem(answer):
        problem = answer.json()
        if problem["status"] != answer.status or problem["type"] != f"/problems/{problem['code']}":
            raise ValueError("status or type do not fit the code")
        if problem["code"] in ("unavailable", "rate_limited") and answer.headers.get("Retry-After") is None:
            raise ValueError("it does not say when to come back")


def header_value(text, kind):
    if kind == "integer":
        return int(text)
    return {"true": True, "false": False}.get(text, text) if kind == "boolean" else text
