package plugin

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// Host holds the factories of a daemon, in the order in which they register.
type Host struct {
	drivers map[string]Factory
	plugins []Factory
}

// ErrNoDriver means that no factory makes the driver that a session asks for.
var ErrNoDriver = errors.New("no such driver")

// NewHost takes the protocol plugins, of which a session uses exactly one, and the others, of which it uses all. Two
// factories of one id are an error.
func NewHost(drivers, plugins []Factory) (*Host, error) {
	h := &Host{drivers: map[string]Factory{}, plugins: slices.Clone(plugins)}
	seen := map[string]bool{}
	for _, f := range slices.Concat(drivers, plugins) {
		if seen[f.ID()] {
			return nil, fmt.Errorf("plugin host: two factories have the id %q", f.ID())
		}
		seen[f.ID()] = true
	}
	for _, f := range drivers {
		h.drivers[f.ID()] = f
	}
	return h, nil
}

// Drivers are the names that a session's configuration may choose from.
func (h *Host) Drivers() []string { return slices.Sorted(maps.Keys(h.drivers)) }

// Open builds the plugins of one session, the driver first. If one fails, those built before are closed and there is
// no session. The caller closes the session.
func (h *Host) Open(driver string, options protocol.PluginOptions, ctx BuildContext) (*Session, error) {
	df, ok := h.drivers[driver]
	if !ok {
		return nil, fmt.Errorf("driver %q: %w", driver, ErrNoDriver)
	}
	s := &Session{}
	opened := false
	defer func() {
		if !opened { // a plugin panicked, and whoever asked for the session deals with it
			_ = s.Close()
		}
	}()
	err := s.open(append([]Factory{df}, h.plugins...), options, ctx)
	opened = true
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
