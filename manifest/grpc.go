package manifest

import "github.com/gitring/gitring/ring"

var grpcKeys = []string{"port", "service", "tls"}

// grpc is a check by the standard health protocol: a port, or a mapping.
func (d *decoder) grpc(n *node) *ring.GRPCCheck {
	g := &ring.GRPCCheck{}
	if n.kind == scalar {
		g.Port = d.port(n, "grpc")
		return g
	}
	if !d.mapping(n, "grpc") {
		return g
	}
	d.keys(n, "grpc", grpcKeys)
	if g.Port = d.port(n.get("port"), "port"); g.Port == 0 {
		d.noPort(n, grpcKeys, "a grpc check")
	}
	g.Service, g.TLS = d.text(n.get("service"), "service"), d.boolean(n.get("tls"), "tls", false)
	return g
}
