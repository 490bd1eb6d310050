# Builds a node image and refuses one that carries units of no use.
# The gate runs inside the machine that is being built, on its own root.

variable "sexton" {
  type    = string
  default = "./sexton"
}

source "qemu" "node" {
  iso_url      = "debian-12-generic-amd64.qcow2"
  iso_checksum = "none"
  disk_image   = true
  ssh_username = "debian"
}

build {
  sources = ["source.qemu.node"]

  provisioner "shell" {
    script          = "install-node.sh"
    execute_command = "sudo sh {{ .Path }}"
  }

  provisioner "file" {
    source      = var.sexton
    destination = "/tmp/sexton"
  }

  provisioner "file" {
    source      = "policy.toml"
    destination = "/tmp/policy.toml"
  }

  # Writes the bake step for what was found, runs it, and then wants a clean audit.
  provisioner "shell" {
    inline = [
      "sudo /tmp/sexton image fix / --write shell > /tmp/sexton-fix.sh",
      "sudo sh /tmp/sexton-fix.sh",
      "sudo /tmp/sexton image verify / --policy /tmp/policy.toml",
    ]
  }

  # And once more from outside, on the file that will be shipped.
  post-processor "shell-local" {
    inline = ["${var.sexton} image verify output-node/packer-node --policy policy.toml"]
  }
}
