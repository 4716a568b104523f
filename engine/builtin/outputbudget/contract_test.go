package outputbudget_test

import (
	"testing"

	"lashd/engine/builtin/outputbudget"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, outputbudget.Factory{}, plugintest.Config{}) }
