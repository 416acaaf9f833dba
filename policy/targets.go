package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gitring/gitring/ring"
)

// What is mounted where, and how a program begins. The kernel's own folders in a
// container are not for mounting over: with a file of the commit at /proc/self/attr
// a container runs unconfined, and what begins in /proc begins in the host's files.
var (
	targetRule = rule{
		name: "mounts.target", key: "volumes", grade: escape, risk: "lies in the kernel's own folders, by which the container is confined",
		lets: "all but `/`, and what lies in `/proc`, `/sys` and `/dev`, without `/dev/shm` and `/dev/mqueue`. A bind of the host is judged by its source. It never lies at `/`, at `/proc` (but the host's own), in `/proc/self` or in `/proc/sys`",
	}
	workingDirRule = rule{
		name: "start.working_dir", key: "working_dir", grade: escape, check: workingDir, lets: "all but what lies in `/proc` and `/dev`",
		risk: "begins in the kernel's own folders, from where open files of the host can be reached",
	}
	hookDirRule = withKey(workingDirRule, "post_start")
)

// programRule is of a list whose first word is the program.
func programRule(key string, check func(*look)) rule {
	return rule{
		name: "start.program", key: key, grade: escape, check: check, lets: "all but a program in `/proc` and `/dev/fd`",
		risk: "runs a program of the kernel's own folders, which can be the one of the host that starts containers",
	}
}

func withKey(r rule, key string) rule {
	r.key = key
	return r
}

var (
	kernelFolders = []string{"/proc", "/sys", "/dev"}
	sharedMemory  = []string{"/dev/shm", "/dev/mqueue"}
	neverTargets  = regexp.MustCompile(`^/$|^/proc$|^/proc/(self|thread-self|sys|[0-9]+)(/|$)`)
)

// targetAt judges where something is mounted in the container. A bind of a path
// of the host is judged by its source, but for a few targets. ofHost is that path,
// "" for what is no such bind.
func (l *look) targetAt(target, ofHost string) {
	p := path.Clean("/" + target)
	if p == "/proc" && ofHost == "/proc" {
		return // the kernel's own folder at its own place, as tools that watch the host ask for it
	}
	f := finding{value: p, at: target, instead: "mount it elsewhere in the container"}
	t := *l
	if t.rule = targetRule; l.rule.key == "tmpfs" {
		t.rule.key = "tmpfs"
	}
	switch {
	case neverTargets.MatchString(p):
		f.grade = forbidden
		t.find(f)
	case ofHost == "" && withinAny(p, kernelFolders) && !withinAny(p, sharedMemory):
		t.find(f)
	}
}

// hookKey is the Compose key of a command that runs inside a container, "" for the
// container's own.
func (l *look) hookKey() string {
	switch {
	case strings.HasPrefix(l.via, "Request.PreStop"):
		return "pre_stop"
	case strings.HasPrefix(l.via, "Request.Reload"):
		return "x-gitring.reload"
	}
	return ""
}

// mountTarget judges Mounts[].Target.
func mountTarget(l *look) {
	source := ""
	if l.fieldText("Type") == "bind" {
		source = l.hostPath(plain(l.fieldText("Source")))
	}
	l.targetAt(l.text(), source)
}

// hostPath returns source, "" where gitring itself placed what lies there.
func (l *look) hostPath(source string) string {
	if l.req.frontSource(source) || l.r.contentOf(l.req, source) || l.r.liveOf(l.req, source) {
		return ""
	}
	return source
}

// tmpfsTargets judges where HostConfig.Tmpfs is mounted: options by target.
func tmpfsTargets(l *look) {
	for _, target := range sortedKeys(l.dict()) {
		l.targetAt(target, "")
	}
}

func withinAny(p string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return within(p, dir) })
}

// workingDir judges the folder in which a program begins. One that is not
// absolute is taken from the root: that of the image is not known to a plan.
func workingDir(l *look) {
	if p := path.Clean("/" + l.text()); withinAny(p, []string{"/proc", "/dev"}) {
		l.find(finding{value: l.text(), key: l.hookKey(), instead: "name a folder of the image"})
	}
}

// firstWord judges the program of an entrypoint, a command or a hook.
func firstWord(l *look) {
	if words := l.words(); len(words) > 0 {
		l.program(words[0])
	}
}

// healthProgram judges the program of a healthcheck: the word after its form.
func healthProgram(l *look) {
	words := l.words()
	if len(words) > 1 && words[0] == "CMD" {
		l.program(words[1])
	}
	if len(words) > 1 && words[0] == "CMD-SHELL" {
		first, _, _ := strings.Cut(strings.TrimSpace(words[1]), " ")
		l.program(first)
	}
}

// checkProgramRule is of the commands by which gitring checks an instance.
var checkProgramRule = withKey(programRule("", nil), "x-gitring.checks")

// inProc reports whether a program is named by a path in /proc, or in /dev/fd, which
// leads there.
func inProc(name string) bool {
	return strings.Contains(name, "/") && withinAny(path.Clean("/"+name), []string{"/proc", "/dev/fd"})
}

// program judges one program. What is sealed is a value of the host's own.
func (l *look) program(name string) {
	if ring.HasSealed(name) || !strings.Contains(name, "/") {
		return // a bare name is looked for in the image's folders of programs
	}
	p := path.Join("/", l.fieldText("WorkingDir"), name)
	if path.IsAbs(name) {
		p = path.Clean(name)
	}
	if inProc(p) {
		l.find(finding{value: name, key: l.hookKey(), instead: "name a program of the image"})
	}
}
