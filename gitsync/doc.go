// Package gitsync follows a branch of a Git repository and yields only commits
// that the rules of their source accept, or the refusal that says why not.
//
// Two halves meet in Objects, the raw object store:
//
//   - The verifying half (grammar.go, signature.go, verify.go and what they
//     use) decides. It parses the stored bytes itself, re-hashes them, and takes
//     the tree from the very bytes whose signature it checked: libraries have
//     verified re-encoded commits instead of the stored ones. It reads no clock
//     and no network; the time comes in.
//   - The mirroring half (mirror.go, follower.go and what they use) fetches,
//     keeps the bare mirror and carries what was decided out to the store.
//
// This is the only package that knows go-git.
//
// Following a branch:
//
//	follower      one source: what it needs, and its life
//	watch         what is known between two looks, and one look
//	bring         where the branch is, and its commits brought here
//	judge         the tip, verified, or refused
//	advance       the anchor moves
//	accept        or a person moves it
//	schedule      when it is looked
//	limits        what a remote may cost
//	hands         what its signers may do, for who asks whose an app is
//	hands_files   and where they may add files, for who asks whose an encrypted file is
//	file_signer   who signed the newest change of a file
//	lost          an anchor that is gone: what this host still knows
//	reverify      what was trusted, held against a configuration that changed
//	audit         and past landings against the rules of now
//	uphold        keys that were taken away stay so
//	pulls         the heads of open pull requests
//	heads         the heads that landed commits were made from
//	pull          one pull request, as a message names it
//	pushed        who vouches for a push
//	past          what the store knows of earlier looks
//	shown         the way to a commit, collected for a proof
//
// The mirror:
//
//	mirror        the bare repository, a cache
//	repack        it is kept small
//	object        one object, hashed as it is read
//	pack          one pack, and its index
//	incoming      what a fetch is asked for, and is let in
//	measure       what reading an object may need
//	reader        streams that are bounded
//
// The process that fetches:
//
//	child         it, as the daemon sees it
//	spare         one that stands ready
//	pipe          what goes between the two
//	serve         its life
//	confine       what it may not do
//	confine_amd64 the processor, as the kernel calls it
//	confine_arm64 the same
//	confine_other one for which there is no list of calls
//	calls         the filter of system calls
//	calls_listed  those that pass, and those that end it
//	names         addresses, which the daemon looks up for it
//	descriptors   what it was started with
//	process_linux how it ends with the daemon, and by which signals
//	process_other what is refused where the client alone is built
//	transport     how each source talks
//	remote_file   to a folder
//	borrowed      the objects that a repository has in another one
//	remote_http   over HTTP
//	remote_ssh    over SSH
//	conn          a connection on which nothing moves
//
// Deciding what is trusted:
//
//	verify        a range of commits, the oldest first
//	walk          which commits these are
//	grammar       the bytes of one
//	message       what it says of itself
//	beginning     where trust begins
//	trust         modes and settings
//	require       what a signature must have besides being good
//	rights        who may change what
//	changed       what a commit changes
//	merged        what a merge changes by itself
//	refusals      every sentence that says no
//	version       how a list of signers counts itself
//	effort        what a verification may read
//	until         and for how long
//	proposed      a head that nobody has landed
//	given         objects that somebody handed over, and those that are noted as they are read
//	dated         when a commit was there at the latest, by those that stand on it
//
// Signatures:
//
//	signature     whose it is, and at what moment
//	openpgp       OpenPGP
//	sshsig        SSH
//	file_signature of a whole file, such as a release
//	certificate   SSH certificates
//	signers       the file of allowed signers
//	bindings      who is bound to which key
//	revoked       what never counts again
//	krl           OpenSSH's lists of that kind
//	ownership     who may have written a file of keys
//	owner_unix    the user that a file belongs to
//	owner_other   nobody, on Windows
//
// Signers in the repository:
//
//	repo_signers  the file, and its bounds
//	edition       the one that counts after a commit
//	check_signers the file, before it is pushed
//
// Merge buttons and bots:
//
//	landed        a commit that a forge made of a signed head
//	standing      what counts of the commits behind the anchor
//	landed_once   and that a head lands only once
//	mergetree     the merge, done again
//	treemerge     and told from folders alone, without git
//	merging       for a person's clone
//	rehash        every object of it hashed
//	vouch         a signed commit that answers for others
//	unanswered    those nobody answers for
//	images        a bot that may change images alone
//	images_env    and their tags in .env
//	images_use    where nothing but images uses these
//	images_found  where a text names images, for who writes newer ones
//
// For people:
//
//	show          what a source trusts now
//	repo          a repository that somebody works in
//	foldertree    a folder as a commit of it would be
//	ignore        what Git leaves out of a commit of it
//	tree          a commit's tree as a file system
//	compare       how two commits lie to each other
package gitsync
