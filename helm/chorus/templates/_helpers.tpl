{{- define "chorus.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* Names are cut so that "-coordinator-0" behind them is still a label of DNS. */}}
{{- define "chorus.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "chorus.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "chorus.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "chorus.coordinator" -}}{{ include "chorus.fullname" . }}-coordinator{{- end -}}
{{/* With TLS several coordinators need names of their own, which certificates can have: of a headless service. */}}
{{- define "chorus.coordinatorPods" -}}
{{ include "chorus.coordinator" . }}{{ if and .Values.coordinator.etcd.endpoints .Values.tls.enabled }}-pods{{ end }}
{{- end -}}
{{- define "chorus.worker" -}}{{ include "chorus.fullname" . }}-worker{{- end -}}

{{- define "chorus.selector" -}}
app.kubernetes.io/name: {{ include "chorus.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "chorus.standardLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "chorus.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: chorus
{{- end -}}
{{- define "chorus.labels" -}}
{{- $standard := include "chorus.standardLabels" . -}}
{{ $standard }}
{{- include "chorus.further" (dict "labels" .Values.commonLabels "given" (printf "%s\napp.kubernetes.io/component: any" $standard)) }}
{{- end -}}

{{/* The labels that are not given already: YAML knows no key twice. Of a dict: labels, given (YAML). */}}
{{- define "chorus.further" -}}
{{- $given := fromYaml .given -}}
{{- $further := dict -}}
{{- range $key, $value := .labels -}}
{{- if not (hasKey $given $key) }}{{ $_ := set $further $key $value }}{{ end -}}
{{- end -}}
{{- with $further }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of a dict: root, labels (that select), own (of .Values). */}}
{{- define "chorus.podLabels" -}}
{{- $given := printf "%s\napp.kubernetes.io/version: %s" .labels (quote .root.Chart.AppVersion) -}}
{{ $given }}
{{- include "chorus.further" (dict "labels" (mergeOverwrite (dict) .root.Values.commonLabels .own) "given" $given) }}
{{- end -}}

{{/* Of a dict: root, suffix. */}}
{{- define "chorus.image" -}}
{{- $image := .root.Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ default .root.Chart.AppVersion $image.tag }}{{ .suffix }}
{{- end -}}
{{- end -}}

{{- define "chorus.serviceAccount" -}}
{{- default (ternary (include "chorus.fullname" .) "default" .Values.serviceAccount.create) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "chorus.scheme" -}}{{ ternary "https" "http" .Values.tls.enabled }}{{- end -}}

{{- define "chorus.workerDomain" -}}
{{ include "chorus.worker" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}
{{- define "chorus.coordinatorHost" -}}
{{ include "chorus.coordinator" . }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end -}}
{{/* Every name that resolves to it within the cluster, and further ones by which it is called. */}}
{{- define "chorus.coordinatorNames" -}}
{{- $name := include "chorus.coordinator" . -}}
{{- $inNamespace := printf "%s.%s" $name .Release.Namespace -}}
{{- $own := list $name $inNamespace (printf "%s.svc" $inNamespace) (include "chorus.coordinatorHost" .) -}}
{{- concat $own .Values.coordinator.allowedHosts | join "," -}}
{{- end -}}
{{- define "chorus.coordinatorUrl" -}}
{{ include "chorus.scheme" . }}://{{ include "chorus.coordinatorHost" . }}:{{ .Values.coordinator.port }}
{{- end -}}

{{- define "chorus.secret" -}}
{{- default (printf "%s-tokens" (include "chorus.fullname" .)) .Values.auth.existingSecret -}}
{{- end -}}

{{/* Variables that every program reads. */}}
{{- define "chorus.clientEnv" -}}
{{- if .Values.tls.enabled }}
- {name: CHORUS_TLS_CA, value: /run/chorus/tls/ca.crt}
{{- end }}
{{- end -}}

{{- define "chorus.serviceEnv" -}}
- {name: CHORUS_HOST, value: "::"}
{{- if .Values.auth.enabled }}
- {name: CHORUS_AUTH_TOKENS, value: /run/chorus/tokens/tokens}
- {name: CHORUS_TOKEN_FILE, value: /run/chorus/tokens/join}
{{- else }}
- {name: CHORUS_INSECURE_NO_AUTH, value: "true"}
{{- end }}
{{- if .Values.tls.enabled }}
- {name: CHORUS_TLS_CERT, value: /run/chorus/tls/tls.crt}
- {name: CHORUS_TLS_KEY, value: /run/chorus/tls/tls.key}
{{- end }}
{{- include "chorus.clientEnv" . }}
{{- end -}}

{{- define "chorus.securityMounts" -}}
{{- if .Values.auth.enabled }}
- {name: tokens, mountPath: /run/chorus/tokens, readOnly: true}
{{- end }}
{{- if .Values.tls.enabled }}
- {name: tls, mountPath: /run/chorus/tls, readOnly: true}
{{- end }}
{{- end -}}

{{/* Of a dict: root, keys (of the tokens' Secret). */}}
{{- define "chorus.securityVolumes" -}}
{{- if .root.Values.auth.enabled }}
- name: tokens
  secret:
    secretName: {{ include "chorus.secret" .root }}
    defaultMode: 0440
    items:
    {{- range .keys }}
      - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end }}
{{- if .root.Values.tls.enabled }}
- name: tls
  secret: {secretName: {{ .root.Values.tls.existingSecret }}, defaultMode: 0440}
{{- end }}
{{- end -}}

{{- define "chorus.podSpec" -}}
serviceAccountName: {{ include "chorus.serviceAccount" . }}
automountServiceAccountToken: false
# Variables like CHORUS_PORT=tcp://... for a service named chorus would be taken for flags.
enableServiceLinks: false
securityContext: {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Of .Values.coordinator or .Values.worker. */}}
{{- define "chorus.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{/* Liveness asks the process alone. Readiness of a worker is its own lease, of a coordinator that it is not stopping,
     and of both that their disks answer: neither asks other workers. Of a dict: root, drainMs. */}}
{{- define "chorus.probes" -}}
{{- $scheme := include "chorus.scheme" .root | upper -}}
startupProbe:
  httpGet: {path: /livez, port: http, scheme: {{ $scheme }}}
  periodSeconds: 1
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /livez, port: http, scheme: {{ $scheme }}}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http, scheme: {{ $scheme }}}
  periodSeconds: 2
  timeoutSeconds: 3
{{- end -}}

{{/* Longer than the drain, so that the process ends by itself. */}}
{{- define "chorus.grace" -}}{{ add 20 (div (add 999 (int .)) 1000) }}{{- end -}}

{{/* Of a dict: root, wish (auto, on, off), kind. */}}
{{- define "chorus.wanted" -}}
{{- if or (eq .wish "on") (and (eq .wish "auto") (.root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind))) -}}yes{{- end -}}
{{- end -}}
