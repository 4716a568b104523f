package workspace

import "lashd/engine/plugin"

// Factory builds the file tools of sessions. The zero value is ready to use. It must live
// as long as the process, because it holds files that must stay open.
type Factory struct{ kept shelf }

// ID implements plugin.Factory.
func (*Factory) ID() string { return "workspace" }

// Build implements plugin.Factory.
func (f *Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return &instance{newFiles(ctx.Cwd, ctx.StateDir, &f.kept)}, nil
}

// instance is the plugin of one session. It owns the open workspace and closes it with the
// session.
type instance struct{ files *files }

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Tools().Add(i.files)
	return nil
}

// Close implements plugin.Closer.
func (i *instance) Close() error { return i.files.close() }
