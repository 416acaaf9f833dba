// Package daemon is what serve wires and decides: it knows every part and starts each,
// takes what a source learned to the loop, and answers who asks by the socket. The
// command line knows how to make it and to run it, and little else.
//
//	daemon         the parts, wired, and run together
//	engine         what is asked of the engine
//	serve          and again, when the configuration is to be read anew
//	differs        whether the file of the configuration says something else
//
// From a commit to the loop:
//
//	source         a trusted commit's tree becomes the plan of this host
//	nofronts       whether the engine can run fronts
//	env            the values that only this host has
//	hostvalues     what is wrong with the values that a configuration names
//	cluster        a swarm: its key, its status, and what a person may not ask of it
//	secretfiles    encrypted files, and what they hold
//	keyfiles       files of keys that went bad since
//	ciphertext     what of them is kept
//	providers      programs of the host that know values
//	provided       what apps get of them, and what is kept
//	content        files that containers mount
//	placed         those with secrets in them
//	emptied        and what a hand took away of them
//	memory_linux   whether a folder is in memory
//	memory_other   which only Linux tells
//	whose          what belongs to which app
//	claims         who gave a folder its name
//	policy         the policy watched, and what in force breaks it
//	policy_stop    what is stopped for that
//	signatures     what the host asks of images, and what was found of them
//	signed         who signed a file that a grant asks about
//	trust          what says up to where a source was trusted
//	pulls          the plan of a pull request
//	pulls_public   what of it everybody may read
//	mirrors        sources that tell two repositories of one commit
//	notify         chats, web hooks and the outbox
//	report         and the hub
//
// What is asked of it:
//
//	calls          by whoever asks the socket
//	api            or by a token on TCP
//	missing        that there is no such app
//	acts           what a person does by hand
//	adopt          a Compose project taken over
//	handback       an app handed back
//	handback_front with its fronts
//	composed       and what Compose would compare then
//	history        what became of each commit
//	images         which tags have moved
//	prove          a proof of who authorised what runs
//	inspect        why a service is as it is
//	front          the program that fronts run
//	traffic        what fronts do
//	upgrade        newer proxies for them
//	trial          after an upgrade of gitring nothing acts for a while
//	rehearse       what this release would do in place of the running one
//	jobs           jobs and their runs
//	crashes        crashes, like ones together
//	metrics        the numbers of all this
//	hooks          which webhooks came
//	doctor         what is wrong with this host
//	probe_linux    and what only its kernel knows
//	probe_other    which the client alone does not ask
//	logs           output of instances
package daemon
