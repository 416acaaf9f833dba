package api

import (
	"context"
	"net"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

// AdminGroup is the group whose members may change things through the socket.
const AdminGroup = "gitring-admin"

// Peer is who asks, as the kernel says.
type Peer struct {
	UID, GID uint32
	PID      int32
	// Name is the user's, "" when this host does not know the number.
	Name string
	// Account is who asks on listen.api, such as token/ci; "" on the socket. It has no
	// user, and a number that nobody has.
	Account string
	scopes  Scopes
	// apps are those that it may see; none is no limit, as on the socket.
	apps Apps
	// token is the one that was shown on listen.api.
	token Token
}

// local reports whether the kernel says who it is.
func (p Peer) local() bool { return p.Account == "" }

// may reports whether a peer that was let in has a scope besides. Who can open the socket
// may read all of it.
func (p Peer) may(s Scope) bool { return p.local() || p.scopes.Has(s) }

// Actor is the word for the peer in the journal.
func (p Peer) Actor() string {
	if p.Account != "" {
		return p.Account
	}
	if p.Name != "" && !strings.Contains(p.Name, "/") { // or it could pass for an account
		return p.Name
	}
	return "uid " + strconv.FormatUint(uint64(p.UID), 10)
}

type peerKey struct{}

// knownPeer is what ConnContext found out about a connection.
type knownPeer struct {
	peer Peer
	err  error
}

// withPeer reads the credentials once per connection: they are those of the
// moment of connecting and cannot be changed by the other side.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, err := peerOf(c)
	if err == nil {
		if u, lookup := user.LookupId(strconv.FormatUint(uint64(p.UID), 10)); lookup == nil {
			p.Name = u.Username
		}
	}
	return context.WithValue(ctx, peerKey{}, knownPeer{p, err})
}

// right is what a route asks of a peer.
type right int

const (
	// mayRead is everyone who can open the socket; its mode and group decide.
	mayRead right = iota
	// mayWrite is root, the daemon's own user and the admin group.
	mayWrite
	// mayTrust is root and the admin group: the daemon's own user must not be
	// able to widen what it trusts.
	mayTrust
)

// allowed reports whether p has the right. member answers for AdminGroup.
func allowed(p Peer, r right, daemon uint32, member func(Peer) bool) bool {
	switch r {
	case mayRead:
		return true
	case mayWrite:
		return p.UID == 0 || p.UID == daemon || member(p)
	case mayTrust:
		return p.UID == 0 || member(p)
	}
	return false
}

// isAdmin asks this host's user database. Any doubt is a no.
func isAdmin(p Peer) bool {
	g, err := user.LookupGroup(AdminGroup)
	if err != nil {
		return false
	}
	if g.Gid == strconv.FormatUint(uint64(p.GID), 10) {
		return true
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(p.UID), 10))
	if err != nil {
		return false
	}
	ids, err := u.GroupIds()
	return err == nil && slices.Contains(ids, g.Gid)
}
