# Not tried: applied. See main.tf.

output "namespace" {
  description = "Where it runs."
  value       = helm_release.duetime.namespace
}

output "version" {
  description = "The installed version of the chart."
  value       = helm_release.duetime.version
}
