{{/* Names and labels. */}}
{{- define "duetime.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- define "duetime.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "duetime.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "duetime.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "duetime.selector" -}}
app.kubernetes.io/name: {{ include "duetime.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "duetime.labels" -}}
{{ include "duetime.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "duetime.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (ternary (include "duetime.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end }}

{{/* One entry of `workers` with its defaults. Give a list: root, name. */}}
{{- define "duetime.worker" -}}
{{- $root := index . 0 -}}
{{- $own := index $root.Values.workers (index . 1) | default dict -}}
{{- mergeOverwrite (deepCopy $root.Values.workerDefaults) (deepCopy $own) | toYaml -}}
{{- end }}

{{/* The image of a component, which may name another one than the chart. Give a list: root, own image. */}}
{{- define "duetime.image" -}}
{{- $root := index . 0 -}}
{{- $image := mergeOverwrite (deepCopy $root.Values.image) (index . 1 | default dict) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository ($image.tag | default $root.Chart.AppVersion) -}}
{{- end -}}
{{- end }}

{{/* Mistakes that the schema cannot find. */}}
{{- define "duetime.check" -}}
{{- if not (or .Values.existingSecret .Values.storeSecret.name) -}}
{{- fail "existingSecret: is missing: name a Secret with the key duetime.toml, or storeSecret.name with the address of the store" -}}
{{- end -}}
{{- range tuple "store" "queue" "secret_keys" "destinations" "key" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s: may hold a password: put it into duetime.toml of existingSecret" .) -}}
{{- end -}}
{{- end -}}
{{- range tuple "grace" "host" "port" "auth" "roles" "config" -}}
{{- if hasKey $.Values.config . -}}
{{- fail (printf "config.%s: is set by the chart: leave it out (graceSeconds sets the grace time)" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.metrics.serviceMonitor.enabled (not .Values.metrics.open) (not .Values.metrics.existingSecret.name) -}}
{{- fail "metrics: /metrics needs an API key: name a Secret in metrics.existingSecret, or set metrics.open and metrics.serviceMonitor" -}}
{{- end -}}
{{- end }}
