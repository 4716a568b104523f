package child

import (
	"context"
	"fmt"

	"lashd/engine/proc"
)

// Approval checks that a command runs the approved program. It is called before each start and may
// replace the command's path by an open file, so that a program swapped after the check does not
// run. The caller calls release once the program has started or its start has failed. A nil
// Approval allows every program.
type Approval func(context.Context, *proc.Command) (release func(), err error)

// Ask checks a command of the named plugin. If the program is not the approved one, the error is an
// *Error with code Modified and nothing has started. If ctx ends first, Ask returns its cause.
func (a Approval) Ask(ctx context.Context, plugin string, c *proc.Command) (release func(), err error) {
	if a == nil {
		return func() {}, nil
	}
	release, err = a(ctx, c)
	switch {
	case err == nil:
		return release, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, &Error{plugin, Modified, fmt.Errorf("%w; nothing was started. Restore the approved files, or review and approve the plugin with: lash plugin trust %s", err, plugin)}
}
