package gitsync

import (
	"bytes"
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const lacksLandlock = "files and ports (function not implemented)"

func TestWhatAHostDoesNotConfineIsTold(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	f := o.apart(&ledger{})
	require.Empty(t, f.Unconfined(), "not known yet")
	f.child.program = script(t, says(`{"confined":["limits"],"free":["`+lacksLandlock+`"]}`)+"exec cat")
	require.Error(t, lookAt(t, f).look(t.Context()).Err)
	require.Equal(t, lacksLandlock, f.Unconfined())

	if version, err := landlockVersion(); err != nil || version < landlockPorts {
		t.Skip("this kernel does not keep ports")
	}
	whole := o.apart(&ledger{}, func(c *Config) { c.RequireConfinement = true })
	whole.child.program = static(t)
	lookAt(t, whole).must()
	require.Empty(t, whole.Unconfined())
}

func TestNothingIsFetchedWhereConfinementIsRequiredAndMissing(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	o.signed("one")
	f := o.apart(&ledger{}, func(c *Config) { c.RequireConfinement = true })
	// It would answer, if it was asked.
	f.child.program = script(t, says(`{"confined":["limits"],"free":["`+lacksLandlock+`"]}`)+hears+says(`{"missing":"it was asked"}`)+"exec cat")
	r := lookAt(t, f).look(t.Context())
	require.ErrorContains(t, r.Err, "require_confinement is true, and this host does not keep the process that fetches from "+lacksLandlock)
	require.False(t, r.Reached)
	require.Nil(t, f.child.proc)
	require.Equal(t, lacksLandlock, f.Unconfined())

	var lacks *NotConfinedError
	require.ErrorAs(t, f.child.check(context.Background()), &lacks)
	require.NoDirExists(t, f.child.begin.Stage)
	if version, err := landlockVersion(); err != nil || version < landlockPorts {
		t.Skip("this kernel does not keep ports")
	}
	f.child.program = static(t)
	require.NoError(t, f.child.check(context.Background()))
	require.NoDirExists(t, f.child.begin.Stage)
}

func TestARefusedCallIsReportedWithWhereItsNumberStands(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &server{out: &out}
	require.NoError(t, s.tell(told{}, &os.PathError{Op: "chmod", Path: "/x", Err: syscall.EPERM}))
	var got told
	require.NoError(t, readMessage(&out, &got, maxAnswer))
	require.Contains(t, got.Fault.Says, "chmod /x: operation not permitted")
	require.Contains(t, got.Fault.Says, "dmesg, type=1326")
}
