package shell_test

import (
	"testing"

	"lashd/engine/builtin/shell"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, shell.New(shell.Config{}), plugintest.Config{}) }
