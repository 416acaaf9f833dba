package runtime

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// elsewhere is why the engine's processes may be another host's; "" where they are
// of this one. Over the network any host may answer, also one behind a tunnel that
// begins here; and so it may behind a socket that is forwarded, or a virtual
// machine's: the engine names its host. What is not sure is elsewhere: that no
// process is to be seen says nothing then, and a number of one is anybody's.
func (d *Docker) elsewhere(ctx context.Context, e engine) string {
	if !strings.HasPrefix(d.opts.URL, "unix://") {
		return fmt.Sprintf("the engine is reached over the network (%s), and may run on another host", d.opts.URL)
	}
	info, err := e.Info(ctx)
	if err != nil {
		return fmt.Sprintf("the engine does not say which host it runs on (%s)", err)
	}
	here, err := os.Hostname()
	if err != nil || info.Name != here {
		return fmt.Sprintf("the engine runs on host %q, and gitring on %q", info.Name, here)
	}
	return ""
}

// hidden is why nobody here can tell which processes of a container run; "" where
// they are to be seen.
func (d *Docker) hidden(ctx context.Context, e engine) string {
	if why := d.elsewhere(ctx, e); why != "" {
		return why
	}
	return unseenProcesses(procs, d.self())
}
