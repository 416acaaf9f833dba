# A container image of gitring: one static binary and CA certificates.
#
#   docker buildx build --platform linux/amd64,linux/arm64 -t gitring .   from source
#   make image                                                           from this checkout's binary, nothing is pulled
#
# How to run it: deploy-examples/compose/compose.yaml. It needs the host's
# network, and its folders at the same paths inside and outside.

# prebuilt stands first, so that building it asks no registry for the stages
# below.
FROM scratch AS prebuilt
COPY bin/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY bin/gitring /usr/bin/gitring
ENTRYPOINT ["/usr/bin/gitring"]
CMD ["serve"]

# The build runs on the builder's own platform and compiles for the target's.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
ARG TARGETOS=linux
ARG TARGETARCH
ARG VERSION=
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION=$VERSION OUT=/out/gitring

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/gitring /usr/bin/gitring
ENTRYPOINT ["/usr/bin/gitring"]
CMD ["serve"]
