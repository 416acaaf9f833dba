package daemon

import (
	"context"
	"io"

	"github.com/gitring/gitring/reconcile"
	"github.com/gitring/gitring/ring"
	"github.com/gitring/gitring/runtime"
)

// engine is what the daemon asks of the engine besides what the loop does. Its methods may
// be called from many goroutines, Look and Do as reconcile says.
type engine interface {
	reconcile.Engine

	// Run and Unplugs listen to the engine's events until ctx ends.
	Run(ctx context.Context) error
	Unplugs(ctx context.Context) error
	Close() error

	// Of the engine itself.
	Version(ctx context.Context) (runtime.EngineVersion, error)
	About(ctx context.Context) (runtime.About, error)
	Runtimes(ctx context.Context) (byDefault string, nvidia []string, err error)
	NoFronts(ctx context.Context) (why string, err error)

	// Of containers. Adopts names those that were taken over.
	Adopts(ids map[string]bool)
	Commits(ctx context.Context, source string) ([]ring.SHA, error)
	Exec(ctx context.Context, id string, argv []string) (exit int, output string, err error)
	Logs(ctx context.Context, id string, o runtime.LogOptions, w io.Writer) error
	Printed(ctx context.Context, id string, want *ring.Service) ([]ring.CheckPrinted, error)
	Usage(ctx context.Context, ids []string) (map[string]ring.Usage, error)

	// Labelled asks for one container by its name or ID, for a proof.
	Labelled(ctx context.Context, name string) (runtime.Labelled, error)

	// Mounted are the contents that containers mount; an error is not "none".
	Mounted(ctx context.Context) (map[string]bool, error)
	// SweepLive removes live folders of containers that are gone.
	SweepLive(ctx context.Context) error

	// SignalFront asks a front for a newer proxy, by its container's name or ID. SweepFronts
	// removes folders and images that no front needs.
	SignalFront(ctx context.Context, container string) error
	SweepFronts(ctx context.Context) error

	// Of images, asked for people.
	Asker() *runtime.Asker
	ImageHere(ctx context.Context, pin string) (bool, error)

	// Notes on what an app finds on this host.
	Loose(ctx context.Context, app *ring.App) ([]string, error)
	Subnets(ctx context.Context, app *ring.App) ([]string, error)

	// Of Compose's containers.
	Adoption(ctx context.Context, a ring.Action, compare bool) (runtime.Adoption, error)
	Composed(ctx context.Context, app string, images map[string]string) ([]runtime.Composed, error)
}
