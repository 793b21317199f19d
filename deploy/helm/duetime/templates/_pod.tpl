{{/* The pod of a component. Give a dict: root, component, roles, values, arguments, drain. */}}
{{- define "duetime.pod" -}}
{{- $root := .root -}}
{{- $values := .values -}}
metadata:
  labels:
    {{- include "duetime.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
    {{- with $root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    # A changed setting starts new pods.
    checksum/config: {{ dict "config" $root.Values.config "grace" $root.Values.graceSeconds "open" $root.Values.metrics.open | toJson | sha256sum }}
    {{- with $values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "duetime.serviceAccount" $root }}
  automountServiceAccountToken: false
  # A Service named duetime would define DUETIME_PORT=tcp://..., which is a setting of Duetime.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add $root.Values.graceSeconds .drain 10 }}
  {{- with $root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    seccompProfile: {type: RuntimeDefault}
  {{- if $root.Values.topologySpread.enabled }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: {{ $root.Values.topologySpread.topologyKey }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "duetime.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ .component }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if $root.Values.migrate.enabled }}
  initContainers:
    - name: migrate
      image: {{ include "duetime.image" (list $root $values.image) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [migrate]
      {{- include "duetime.container" (list $root (ternary "owner" "settings" (ne $root.Values.migrate.existingSecret ""))) | nindent 6 }}
      resources: {{- toYaml $values.resources | nindent 8 }}
  {{- end }}
  containers:
    - name: duetime
      image: {{ include "duetime.image" (list $root $values.image) }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: [serve, --roles, {{ .roles | quote }}, --port, "8080" {{- range .arguments }}, {{ . | quote }}{{ end }}]
      {{- include "duetime.container" (list $root "settings") | nindent 6 }}
      ports:
        - {name: http, containerPort: 8080}
      # The process answers. It never asks the store: an outage of the database restarts no pod.
      livenessProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # The process can do its work. While the store is gone the pod gets no requests, and stays.
      readinessProbe:
        httpGet: {path: /readyz, port: http}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      startupProbe:
        httpGet: {path: /healthz, port: http}
        periodSeconds: 1
        timeoutSeconds: 5
        failureThreshold: 60
      resources: {{- toYaml $values.resources | nindent 8 }}
  volumes:
    - name: temporary
      emptyDir: {}
    {{- if $root.Values.existingSecret }}
    - name: settings
      secret: {secretName: {{ $root.Values.existingSecret }}, items: [{key: duetime.toml, path: duetime.toml}]}
    {{- end }}
    {{- if and $root.Values.migrate.enabled $root.Values.migrate.existingSecret }}
    - name: owner
      secret: {secretName: {{ $root.Values.migrate.existingSecret }}, items: [{key: duetime.toml, path: duetime.toml}]}
    {{- end }}
    {{- with $root.Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* What all containers have. Give a list: root, volume with duetime.toml. */}}
{{- define "duetime.container" -}}
{{- $root := index . 0 -}}
{{- $volume := index . 1 -}}
{{- $file := or (eq $volume "owner") (ne $root.Values.existingSecret "") -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  {{- if $file }}
  - {name: DUETIME_CONFIG, value: /etc/duetime/duetime.toml}
  {{- end }}
  {{- if and $root.Values.storeSecret.name (ne $volume "owner") }}
  - name: DUETIME_STORE
    valueFrom:
      secretKeyRef: {name: {{ $root.Values.storeSecret.name }}, key: {{ $root.Values.storeSecret.key }}}
  {{- end }}
  - {name: DUETIME_HOST, value: 0.0.0.0}
  - {name: DUETIME_AUTH, value: keys}
  - {name: DUETIME_GRACE, value: {{ printf "%ds" (int $root.Values.graceSeconds) | quote }}}
  {{- if $root.Values.metrics.open }}
  - {name: DUETIME_OPEN_METRICS, value: "yes"}
  {{- end }}
  {{- range $name, $value := $root.Values.config }}
  - {name: {{ printf "DUETIME_%s" (upper $name) }}, value: {{ $value | toString | quote }}}
  {{- end }}
  {{- with $root.Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumeMounts:
  - {name: temporary, mountPath: /tmp}
  {{- if $file }}
  - {name: {{ $volume }}, mountPath: /etc/duetime, readOnly: true}
  {{- end }}
  {{- with $root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
