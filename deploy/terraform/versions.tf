# Not tried: applied. See main.tf.

terraform {
  required_version = ">= 1.5"

  required_providers {
    helm = {
      source  = "hashicorp/helm"
      version = ">= 2.12, < 4.0"
    }
  }
}
