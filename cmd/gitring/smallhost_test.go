package main

// smallHost is the smallest configuration that there is.
const smallHost = `host: edge-1
sources:
  - name: prod
    url: https://git.example.org/acme/infra.git
    trust: {allowed_signers: /etc/gitring/allowed_signers}
`
