package rlm_test

import (
	"testing"

	"lashd/engine/driver/rlm"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) { plugintest.Run(t, rlm.Factory{}, plugintest.Config{}) }
