package process

import (
	"context"
	"errors"

	"lashd/engine/plugin"
)

// Private is a plugin.Factory whose sessions have a process each, so that one that uses too much memory or is killed
// harms no other session. A process starts on first use and ends with its session.
type Private struct{ Config Config }

// ID implements plugin.Factory.
func (p Private) ID() string { return p.Config.ID }

// Build implements plugin.Factory.
func (p Private) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	f, err := New(p.Config)
	if err != nil {
		return nil, err
	}
	made, err := f.Build(ctx)
	if err != nil {
		return nil, errors.Join(err, f.Shutdown(context.Background()))
	}
	return &private{made, f}, nil
}

// private is the plugin of one session with its process.
type private struct {
	plugin.Plugin
	factory *Factory
}

// Close implements plugin.Closer. It returns when the process has ended.
func (p *private) Close() error {
	var err error
	if c, ok := p.Plugin.(plugin.Closer); ok {
		err = c.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.factory.config.Deadlines.Stop)
	defer cancel()
	return errors.Join(err, p.factory.Shutdown(ctx))
}
