package subagents_test

import (
	"testing"

	"lashd/engine/builtin/subagents"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, subagents.Factory{}, plugintest.Config{}) }
