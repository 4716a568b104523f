package workgroup

import (
	"errors"
	"fmt"
	"runtime/debug"

	"lashd/engine/plugin"
)

// ErrPanic means that code panicked. The log has the stack.
var ErrPanic = errors.New("panic")

// Recovered logs a recovered panic and returns it as an error. A driver that does not return panics with a
// plugin.AbandonedError, which Recovered returns unchanged. key and id name the work in the log, such as "turn" and its
// id.
func (g *Group) Recovered(key string, id, p any) error {
	stack := debug.Stack()
	switch thrown := p.(type) {
	case *plugin.AbandonedError:
		g.log.Error("plugin did not return", key, id, "error", thrown)
		return thrown
	case *plugin.PanicError:
		p, stack = thrown.Value, thrown.Stack
	}
	g.log.Error("panic", key, id, "panic", p, "stack", string(stack))
	return fmt.Errorf("%w: %v", ErrPanic, p)
}

// LogPanic logs the stack if err is a panic of a plugin; the error itself only names the plugin.
func (g *Group) LogPanic(err error) {
	if p, ok := errors.AsType[*plugin.PanicError](err); ok {
		g.log.Error("panic", "error", err, "stack", string(p.Stack))
	}
}
