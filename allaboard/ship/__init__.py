"""What is put into a cluster: manifests that follow from code, the Helm chart, and that they agree."""
