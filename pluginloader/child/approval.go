package child

import (
	"context"
	"fmt"

	"lashd/engine/proc"
)

// Approval has a command run the program that a person has approved, and nothing else. Nil: nobody has to approve it. It is
// asked before each start; what it gives lets go of the program, once that runs.
type Approval func(context.Context, *proc.Command) (release func(), err error)

// Ask asks for a command of a plugin. A program that is not the one that was approved is an Error with the code Modified.
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
	return nil, &Error{plugin, Modified, fmt.Errorf("%w; nothing was started. Restore the approved files, or review and approve the plugin with: lashd plugin trust", err)}
}
