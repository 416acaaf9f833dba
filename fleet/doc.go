// Package fleet reaches the daemons of other hosts over ssh, and knows which hosts there
// are. It runs the user's own ssh, so keys, jump hosts and known hosts stay where they
// are, and a host needs no listener, token or certificate for it.
//
//	address    which host: ssh://[user@]name[:port][/path/of/socket]
//	dial       a connection to its daemon, through ssh
//	inventory  the hosts by name
//	each       many of them asked at once
package fleet
