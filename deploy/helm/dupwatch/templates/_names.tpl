{{/* The beginning of all names. Suffixes have up to 16 characters, and the names of CronJobs up to 52, of Services 63. */}}
{{- define "dupwatch.fullname" -}}
{{- $name := .Values.fullnameOverride | default .Release.Name -}}
{{- if not (or .Values.fullnameOverride (hasPrefix "dupwatch" $name)) -}}
{{- $name = printf "dupwatch-%s" $name -}}
{{- end -}}
{{- $name = replace "." "-" $name -}}
{{- if gt (len $name) 41 -}}
{{- $name = printf "%s-%s" (trunc 32 $name | trimSuffix "-") (sha256sum $name | trunc 8) -}}
{{- end -}}
{{- $name -}}
{{- end }}

{{/* The labels by which pods are selected. Arguments: root, component. */}}
{{- define "dupwatch.selector" -}}
app.kubernetes.io/name: dupwatch
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end }}

{{/* Name, namespace, labels and annotations of an object. Arguments: root, name; component, labels, annotations. */}}
{{- define "dupwatch.metadata" -}}
{{- $labels := fromYaml (include "dupwatch.selector" .) -}}
{{- $_ := set $labels "app.kubernetes.io/version" (.root.Chart.AppVersion | replace "+" "_") -}}
{{- $_ := set $labels "app.kubernetes.io/managed-by" .root.Release.Service -}}
{{- $_ := set $labels "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_") -}}
name: {{ .name | quote }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- merge $labels (deepCopy (.labels | default dict)) (deepCopy .root.Values.labels) | toYaml | nindent 2 }}
{{- with merge (deepCopy (.annotations | default dict)) (deepCopy .root.Values.annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "dupwatch.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "dupwatch.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{/* Image and pull policy of a container. Arguments: root, image, value (its name in the values). */}}
{{- define "dupwatch.image" -}}
{{- $repository := .image.repository | required (printf "%s.repository is empty: name an image, such as registry.example.org/dupwatch" .value) -}}
{{- $tag := eq .value "image" | ternary (.image.tag | default .root.Chart.AppVersion) .image.tag | required (printf "%s.tag is empty: name a tag" .value) -}}
image: {{ printf "%s:%s" $repository $tag | quote }}
imagePullPolicy: {{ .image.pullPolicy }}
{{- end }}
