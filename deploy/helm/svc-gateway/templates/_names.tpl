{{- define "svc-gateway.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-{{ .Chart.Name }}{{ end -}}
{{- end }}

{{- define "svc-gateway.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "svc-gateway.labels" -}}
{{ include "svc-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* With client certificates the kubelet is refused, as it has none: that somebody listens must do. */ -}}
{{- define "svc-gateway.probe" -}}
{{- if .root.Values.secrets.tlsClientCa.name -}}
tcpSocket: { port: http }
{{- else -}}
httpGet: { path: {{ .path }}, port: http, scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.secrets.tls.name "") }} }
{{- end -}}
{{- end }}
