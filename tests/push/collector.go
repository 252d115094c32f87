// SPDX-License-Identifier: GPL-2.0-only
// An OpenTelemetry collector with what the tests need: OTLP in, text out, and bearer tokens.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

type tokenConfig struct {
	Token string `mapstructure:"token"`
}

type tokenServer struct {
	component.StartFunc
	component.ShutdownFunc
	extensionauth.ServerAuthenticateFunc
}

func newToken(_ context.Context, _ extension.Settings, config component.Config) (extension.Extension, error) {
	expected := "Bearer " + config.(*tokenConfig).Token
	check := func(ctx context.Context, headers map[string][]string) (context.Context, error) {
		got := headers["Authorization"]
		if len(got) != 1 || got[0] != expected {
			return ctx, errors.New("that is not the token")
		}
		return ctx, nil
	}
	return &tokenServer{ServerAuthenticateFunc: check}, nil
}

func factories() (otelcol.Factories, error) {
	token := extension.NewFactory(component.MustNewType("token"),
		func() component.Config { return &tokenConfig{} }, newToken, component.StabilityLevelDevelopment)
	receivers, err1 := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	exporters, err2 := otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
	extensions, err3 := otelcol.MakeFactoryMap[extension.Factory](token)
	return otelcol.Factories{Telemetry: otelconftelemetry.NewFactory(), Receivers: receivers,
		Exporters: exporters, Extensions: extensions}, errors.Join(err1, err2, err3)
}

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Version: "0"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{
				DefaultScheme: "file",
				ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
			},
		},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
