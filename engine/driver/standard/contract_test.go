package standard_test

import (
	"testing"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, standard.Factory{}, plugintest.Config{}) }
