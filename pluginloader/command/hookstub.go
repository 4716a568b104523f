package command

import (
	"lashd/engine/plugin"
	"lashd/pluginloader/manifest"
)

type hook struct{ manifest.CommandHook }

func (p *Part) newHook(h manifest.CommandHook) (*hook, error) { return &hook{h}, nil }

type session struct {
	part  *Part
	build plugin.BuildContext
}

func (s *session) register(r *plugin.Registrar) {}
