// Package api is the daemon's three doors: Webhooks on TCP, where strangers
// knock, Socket on a unix socket, where the command line asks, and Web on TCP,
// for people and programs with a token. It knows nothing of the rest: what it
// serves comes as the func fields of Calls.
//
// All doors:
//
//	listen           they are opened
//	serve            and closed, without cutting off who is inside
//	conns            so many at once
//
// The socket, from the one who asks to the answer:
//
//	client           asks
//	socket           what can be asked, and who may
//	peer             who asks, as the kernel says
//	peer_linux       on Linux
//	peer_other       elsewhere nobody is known
//	query            values of a URL
//	calls            what the daemon answers with
//	error            and what it says instead
//	stream           answers that come line by line
//	sse              a stream of events for browsers
//	snapshot         answers that have not changed
//	openapi          what there is, for programs
//	act              what a person does by hand
//	adopt            a Compose project taken over, or handed back
//	jobs             jobs and their runs
//	crashes          crashes, like ones together
//	inspect          why a service is as it is
//	prove            a proof of who authorised what runs
//	usage            what instances take of the host
//	history          what became of each commit
//	outcome          in one word
//	filter           services chosen by phase and label
//	named            that this host has no such app, and which was meant
//	traffic          what fronts do, and newer proxies for them
//	images           which tags have moved
//	outbox           what is still to be said, and messages for a test
//	doctor           what is wrong with the host
//	metrics          what Prometheus reads
//	tree             a folder that is sent for a plan
//
// The door for people and programs on TCP, listen.api:
//
//	web              who asks, and what they may do
//	scope            the words for that
//	tokens           the file of tokens
//	apps             what of the host a token is limited to
//	sessions         a browser that is signed in
//	oidc             a browser that signs in with an issuer
//	inside           calls within this process, for pages
//	certificate      of TLS
//	hub              what can be asked of a hub, in the place of a daemon
//
// The door of one person, on the machine that they sit at:
//
//	local            what a browser there may ask of a daemon elsewhere
//	within           and what its pages may
//
// Webhooks, from the knock to the hint:
//
//	webhooks         one endpoint, and what it does with a request
//	hooklimits       what an address can make it do at most
//	rate             how often
//	hook_body        what is read of a request
//	secrets          what is shared with a forge
//	hook_forge       the forges, and which proof each brings
//	hook_signed      a MAC over the body
//	hook_timed       and over the time
//	hook_standard    Standard Webhooks
//	hook_gitlab      GitLab's, new and old
//	hook_token       a secret sent as it is
//	hook_deliveries  a delivery that was seen before
//	hook_news        what the request is good for
//	hook_told        what the log tells of it, and how often
package api
