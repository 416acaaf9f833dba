// Package proxy is the front that stands before a service, and the client by which the daemon
// speaks with it. docs/design/traffic.md says how they belong together.
//
// A front is one container with two kinds of processes. The supervisor owns the listening
// sockets and reads no byte of a client. The proxy inherits them and carries bytes; a newer
// one can take its place while the sockets stay open.
//
// The process:
//
//	front        the table in force, claims, and how instances are connected to
//	table        a table is checked whole
//	member       one instance, with all that is in flight to it
//	pick         which instance gets a request
//	probe        whom the front can reach
//	names        the engine's DNS, and which of its answers are used
//	counts       what came of requests
//	logged       errors as they may be logged
//	control      the socket by which the daemon speaks with it
//	before       what older proxies counted, and their end where they hang
//	listener_linux who listens on a socket
//	listener_other nobody knows, there
//
// The supervisor, and the program:
//
//	supervisor_unix process 1: sockets, and the proxies that inherit them
//	builds_unix  which proxy is the newest
//	main_unix    the commands of the program, and how a proxy begins and ends
//	main_windows nothing, there
//
// Carrying:
//
//	port         one listening port: accepting, and how many at once
//	detect       which protocol a client speaks
//	guard        what no two parsers may read in two ways
//	frames       where a request begins and ends
//	http         requests and answers, and what is tried again
//	stall        clients that do not move, and room for others
//	memory       how much of it the container has, and connections may take
//	tcp          byte for byte, both ways
//	udp          flows of datagrams
//	udp_linux    reading without a buffer of one's own
//	udp_other    the same elsewhere
//
// The daemon's side:
//
//	client       tables are written and sent, and fronts are asked
//	tablefile    a table comes to the disk, whole and for good
//	rundir       the folder of the host that a front may write to is kept small
//	socket_linux the socket of a front that may be hostile
//	socket_other the same elsewhere
//	errno_unix   which errors say that nobody listens
//	errno_windows the same there
package proxy
