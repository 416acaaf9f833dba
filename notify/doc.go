// Package notify is the way out: it tells forges how commits fared. What to
// say stands in the outbox of the store; here it is said, retried, and given
// up in the end. A forge that is away delays nobody.
//
// Statuses:
//
//	sender             what the outbox holds is said
//	outbox             the outbox, as it is needed here
//	line               the way to one source's forge
//	post               one attempt
//	call               one request
//	limit              a forge that says too many
//	words              what other hosts say of commits
//	words_read         as each forge tells it
//	describe           words that fit a forge
//	place              where a forge is, by the source's URL
//
// Forges:
//
//	forge              which there are
//	token_check        whether a forge takes our token, and until when
//	driver             what tells one from another
//	github             GitHub
//	github_deployments its deployments
//	app                tokens of a GitHub App
//	gitlab             GitLab
//	gitlab_deployments its deployments
//	gitea              Gitea and Forgejo
//	bitbucket          Bitbucket Cloud
//	bitbucket_dc       Bitbucket Data Center
//
// Pull requests:
//
//	pulls              when they are looked at
//	pull               one, and what is said below it
//	pull_text          in which words
//	pull_github        GitHub
//	pull_gitlab        GitLab
//	pull_gitea         Gitea and Forgejo
//	pull_bitbucket     Bitbucket Cloud
//	pull_bitbucket_dc  Bitbucket Data Center
//
// Receivers of events:
//
//	receiver           a chat, or a web hook
//	receiver_listener  reads the journal for it
//	receiver_event     which events it hears
//	receiver_fold      what becomes one message
//	receiver_text      in which words
//	receiver_template  or in a person's own
//	receiver_trace     what becomes the trace of a commit
//	receiver_otlp      a collector of traces is told
//	receiver_hook      a web hook is told
//	receiver_chat      a chat is told
//	process_linux      how its process ends with the daemon
//	process_other      nothing of it, where the client alone is built
//	worker             by a process of its own
//	worker_own         which says some by itself
//	guard              no message goes inside
//	guard_address      which addresses are inside
package notify
