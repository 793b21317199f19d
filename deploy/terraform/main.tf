# Duetime on Kubernetes, as one release of the Helm chart next to it.
#
#   module "duetime" {
#     source          = "git::https://github.com/duetime/duetime.git//deploy/terraform?ref=v0.1.0"
#     existing_secret = "duetime"
#   }
#
# Tried: parsed; variables, references and the values for the chart compared with the chart (tests/deploy/test_terraform.py).
# Not tried: `terraform validate`, which needs the provider, and `terraform apply`.

resource "helm_release" "duetime" {
  name             = var.name
  namespace        = var.namespace
  create_namespace = var.create_namespace
  chart            = var.chart != null ? var.chart : "${path.module}/../helm/duetime"
  version          = var.chart_version
  # The chart has no hooks, so waiting cannot block itself.
  wait            = true
  atomic          = var.atomic
  timeout         = var.timeout
  cleanup_on_fail = true

  values = concat(
    [yamlencode({ existingSecret = var.existing_secret })],
    [yamlencode({ api = { replicas = var.api_replicas }, planner = { replicas = var.planner_replicas } })],
    [yamlencode({ workers = var.workers })],
    [yamlencode({ config = var.config })],
    [yamlencode(var.values)],
  )
}
