//go:build !linux

package runtime

import (
	"net"
	"net/netip"
)

// hostAddresses are the addresses of all devices, by index, with their networks.
func hostAddresses(devices []net.Interface) (map[int][]netip.Prefix, error) {
	out := map[int][]netip.Prefix{}
	for _, device := range devices {
		addresses, err := device.Addrs()
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				out[device.Index] = append(out[device.Index], p)
			}
		}
	}
	return out, nil
}
