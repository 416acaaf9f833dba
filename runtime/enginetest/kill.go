package enginetest

import (
	"context"

	cerrdefs "github.com/containerd/errdefs"
)

// ContainerKill sends a signal, which ends nothing here: what a program does
// with it, the image says.
func (m *Client) ContainerKill(ctx context.Context, id, signal string) error {
	c, err := call(ctx, m, "ContainerKill", func() (*fakeContainer, error) {
		c, err := m.must(id)
		if err == nil && !c.c.State.Running {
			err = Refuse(cerrdefs.ErrConflict, "Cannot kill container: %s: Container %s is not running", id, c.c.ID)
		}
		if err == nil {
			m.emit("kill", c)
		}
		return c, err
	})
	// Outside the lock: the program may use the fake.
	if err == nil && c.image != nil && c.image.Signal != nil {
		c.image.Signal(&Fake{mem: m}, c.c.ID, signal)
	}
	return err
}
