package monitor_test

import (
	"testing"

	"lashd/engine/builtin/monitor"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, monitor.Factory{}, plugintest.Config{})
}
