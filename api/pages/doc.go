// Package pages is the dashboard: HTML of what the API answers. A page is a function of
// those answers, of who looks and of the URL, and works without JavaScript.
//
// Who serves it gives New the two things that it cannot know: Answers, the daemon's answers
// for one viewer, and Viewer, who that is. The daemon's listener asks within its own process
// (api.Socket.Inside); "gitring ui" asks over the socket, and an *api.Client is such Answers
// as it is. Both serve, beside the pages, GET /v1/stream and GET /v1/logs for the script of
// live pages, and hold requests to their own host and origin.
//
//	answers   what is asked, and of whom
//	handler   a request, and the page that it gets
//	routes    all pages, and who may see each
//	kept      a page is made once for all who see the same
//	render    a page made of a template
//	text      words of templates: times, commits, sizes
//	signers   who signed a commit
//	words     a word, a shape and a colour for each state
//	static    the style, the scripts and the icons
//
// The pages, one file each, with a template of the same name:
//
//	now       all apps; what is wrong comes first
//	app       one app
//	service   why a service is as it is
//	logs      what its instances print, and a search in it
//	commit    who signed it, and what became of it
//	plan      what the next commit will change
//	history   commits, and rollouts as bars
//	jobs      a week of jobs
//	crashes   crashes, like ones together
//	trust     whose signatures count
//	doctor    what is wrong with the host
//	act       what a person does by hand
//	signin    a session begins, or ends
//	hosts     of a hub: a line for each host, and the pages of each below it
package pages
