package batch_test

import (
	"testing"

	"lashd/engine/builtin/batch"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, batch.Factory{}, plugintest.Config{})
}
