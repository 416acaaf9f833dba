package runtime

import (
	"net"
	"net/netip"
	"syscall"
	"unsafe"
)

// hostAddresses are the addresses of all devices, by index, with their networks. The kernel is
// asked once: net.Interface.Addrs asks it for all addresses for each device, and a host has
// several devices for each app.
func hostAddresses([]net.Interface) (map[int][]netip.Prefix, error) {
	answer, err := syscall.NetlinkRIB(syscall.RTM_GETADDR, syscall.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseNetlinkMessage(answer)
	if err != nil {
		return nil, err
	}
	out := map[int][]netip.Prefix{}
	for i := range messages {
		m := &messages[i]
		if m.Header.Type != syscall.RTM_NEWADDR || len(m.Data) < syscall.SizeofIfAddrmsg {
			continue
		}
		about := (*syscall.IfAddrmsg)(unsafe.Pointer(&m.Data[0]))
		attributes, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return nil, err
		}
		var own, other netip.Addr // the latter is the far end's where a device has two
		for _, a := range attributes {
			at, ok := netip.AddrFromSlice(a.Value)
			switch {
			case !ok:
			case a.Attr.Type == syscall.IFA_LOCAL:
				own = at
			case a.Attr.Type == syscall.IFA_ADDRESS:
				other = at
			}
		}
		if !own.IsValid() {
			own = other
		}
		if own.IsValid() {
			index := int(about.Index)
			out[index] = append(out[index], netip.PrefixFrom(own, int(about.Prefixlen)))
		}
	}
	return out, nil
}
