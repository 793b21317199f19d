# Not tried: applied. See main.tf.

variable "name" {
  description = "The name of the release."
  type        = string
  default     = "duetime"
}

variable "namespace" {
  description = "The namespace of the release."
  type        = string
  default     = "duetime"
}

variable "create_namespace" {
  description = "Whether to create the namespace."
  type        = bool
  default     = true
}

variable "chart" {
  description = "Another place of the chart, for example oci://registry.example.org/charts/duetime. The default is the chart of this repository."
  type        = string
  default     = null
}

variable "chart_version" {
  description = "The version of the chart, if it comes from a registry."
  type        = string
  default     = null
}

variable "existing_secret" {
  description = "The name of a Secret with the key duetime.toml: store, secret_keys and, with a broker, queue. Not made here, so that no secret is in the state of Terraform."
  type        = string

  validation {
    condition     = length(var.existing_secret) > 0
    error_message = "Name a Secret that has the key duetime.toml."
  }
}

variable "api_replicas" {
  description = "How many pods answer the API."
  type        = number
  default     = 2
}

variable "planner_replicas" {
  description = "How many pods plan schedules."
  type        = number
  default     = 2
}

variable "workers" {
  description = "Pools of workers: values `workers` of the chart."
  type        = any
  default     = { default = {} }
}

variable "config" {
  description = "Settings that are not secret, by name: values `config` of the chart."
  type        = map(string)
  default     = {}
}

variable "values" {
  description = "All other values of the chart. They win over those above."
  type        = any
  default     = {}
}

variable "atomic" {
  description = "Whether a failed upgrade goes back to the release before. The schema does not go back; the release before works with it."
  type        = bool
  default     = false
}

variable "timeout" {
  description = "Seconds to wait for the pods."
  type        = number
  default     = 300
}
