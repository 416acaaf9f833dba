package enginetest

import (
	"bufio"
	"context"
	"io"
	"net"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
)

type fakeExec struct {
	c    *fakeContainer
	cmd  Command
	exit int
}

func (m *Client) ContainerExecCreate(ctx context.Context, id string, o container.ExecOptions) (container.ExecCreateResponse, error) {
	return call(ctx, m, "ContainerExecCreate", func() (container.ExecCreateResponse, error) {
		c, err := m.must(id)
		if err != nil {
			return container.ExecCreateResponse{}, err
		}
		if !c.c.State.Running {
			return container.ExecCreateResponse{}, Refuse(cerrdefs.ErrConflict, "Container %s is not running", c.c.ID)
		}
		x := m.id("exec")
		m.execs[x] = &fakeExec{c: c, cmd: Command{o.Cmd, o.User, o.WorkingDir, o.Env, o.Privileged}}
		return container.ExecCreateResponse{ID: x}, nil
	})
}

func (m *Client) ContainerExecAttach(ctx context.Context, exec string, _ container.ExecAttachOptions) (types.HijackedResponse, error) {
	x, err := call(ctx, m, "ContainerExecAttach", func() (*fakeExec, error) {
		if x := m.execs[exec]; x != nil {
			return x, nil
		}
		return nil, Refuse(cerrdefs.ErrNotFound, "No such exec instance: %s", exec)
	})
	if err != nil {
		return types.HijackedResponse{}, err
	}
	var out string
	// Outside the lock: the program may use the fake.
	switch i := x.c.image; {
	case i == nil:
	case i.Command != nil:
		x.exit, out = i.Command(&Fake{mem: m}, x.c.c.ID, x.cmd)
	case i.Exec != nil:
		x.exit, out = i.Exec(&Fake{mem: m}, x.c.c.ID, x.cmd.Argv)
	}
	near, far := net.Pipe()
	go func() {
		_, _ = io.WriteString(stdcopy.NewStdWriter(far, stdcopy.Stdout), out) // the reader may be gone
		_ = far.Close()
	}()
	return types.HijackedResponse{Conn: near, Reader: bufio.NewReader(near)}, nil
}

func (m *Client) ContainerExecInspect(ctx context.Context, exec string) (container.ExecInspect, error) {
	return call(ctx, m, "ContainerExecInspect", func() (container.ExecInspect, error) {
		x := m.execs[exec]
		if x == nil {
			return container.ExecInspect{}, Refuse(cerrdefs.ErrNotFound, "No such exec instance: %s", exec)
		}
		delete(m.execs, exec) // asked once, after the end
		return container.ExecInspect{ExecID: exec, ContainerID: x.c.c.ID, ExitCode: x.exit}, nil
	})
}
