package workspace

import (
	"context"
	"time"

	"lashd/rpc/protocol"
)

// readLimit bounds a call of a tool that only reads. A file system that hangs, such as a network mount whose server is gone, would
// hold the turn otherwise.
const readLimit = 2 * time.Minute

// errHangs is the failure of a call that took longer than readLimit.
var errHangs = &fault{protocol.FailTimeout, "timeout", "reading did not finish within " + readLimit.String() +
	"; the file system may hang, or this is too much at once: try another path or a smaller part"}

// inTime runs read, which must not change anything, and gives up on it after readLimit or when ctx ends. An abandoned read goes on in the
// background until the file system answers; its outcome is dropped.
func inTime(ctx context.Context, read func(context.Context) (protocol.ToolOutput, error)) (protocol.ToolOutput, error) {
	type outcome struct {
		out   protocol.ToolOutput
		err   error
		panic any // of read; it goes on in the caller, who contains it
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readLimit, errHangs)
	defer cancel()
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panic = recover()
			done <- o
		}()
		o.out, o.err = read(ctx)
	}()
	select {
	case o := <-done:
		if o.panic != nil {
			panic(o.panic)
		}
		return o.out, o.err
	case <-ctx.Done():
		return protocol.ToolOutput{}, context.Cause(ctx)
	}
}
