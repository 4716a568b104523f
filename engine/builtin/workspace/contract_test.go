package workspace_test

import (
	"testing"

	"lashd/engine/builtin/workspace"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, new(workspace.Factory), plugintest.Config{}) }
