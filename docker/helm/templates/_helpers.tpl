{{/* A Helm name: the release, then the part. */}}
{{- define "binlake.name" -}}
{{ printf "%s-%s" (.root.Release.Name | trunc 40 | trimSuffix "-") .part }}
{{- end }}

{{- define "binlake.selector" -}}
app.kubernetes.io/name: binlake
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "binlake.labels" -}}
{{ include "binlake.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{/* The settings of the stream as YAML, with the address that probes ask. */}}
{{- define "binlake.settings" -}}
{{- $given := required "stream.settings is empty: helm install ... --set-file stream.settings=shop.yaml" .Values.stream.settings -}}
{{- $settings := $given -}}
{{- if kindIs "string" $given -}}
{{- $settings = fromYaml $given -}}
{{- if hasKey $settings "Error" -}}{{- fail (printf "stream.settings is no YAML: %s" $settings.Error) -}}{{- end -}}
{{- end -}}
{{- toYaml (mergeOverwrite (deepCopy $settings) (dict "monitoring" (dict "host" "0.0.0.0" "port" .Values.stream.port))) -}}
{{- end }}

{{/* What all pods have. The image runs as user 185 of the group 0. */}}
{{- define "binlake.pod" -}}
automountServiceAccountToken: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 185
  runAsGroup: 0
  fsGroup: 0
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: settings
    configMap: {name: {{ include "binlake.name" (dict "root" .root "part" "settings") }}}
{{- with .root.Values.lakeClaim }}
  - name: lake
    persistentVolumeClaim: {claimName: {{ . }}}
{{- end }}
{{- end }}

{{/* What all containers have. */}}
{{- define "binlake.container" -}}
image: {{ printf "%s:%s" .root.Values.image.repository .root.Values.image.tag | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
env:
  - {name: SUPERVISE_PAUSE, value: {{ .root.Values.stream.pause | quote }}}
{{- range $name, $value := .root.Values.env }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- with .root.Values.secrets }}
envFrom:
{{- range . }}
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end }}
volumeMounts:
  - {name: settings, mountPath: /etc/binlake, readOnly: true}
{{- if .root.Values.lakeClaim }}
  - {name: lake, mountPath: /lake}
{{- end }}
resources: {{- toYaml .resources | nindent 2 }}
{{- end }}

{{/* Started again after 70 and 75 and after a kill (137), or when its node goes; any other code fails the job. */}}
{{- define "binlake.job" -}}
backoffLimit: {{ .retries }}
podFailurePolicy:
  rules:
    - action: Ignore
      onPodConditions:
        - {type: DisruptionTarget, status: "True"}
    - action: FailJob
      onExitCodes:
        operator: NotIn
        values: [70, 75, 137]
{{- end }}
