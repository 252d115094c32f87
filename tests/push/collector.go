// SPDX-License-Identifier: GPL-2.0-only
// collector FILE: what an OpenTelemetry collector makes of profiles: its OTLP receiver and its debug exporter, which
// prints them, behind an extension for bearer tokens. It prints the times of samples, which that exporter does not:
// "times COUNT FIRST LAST", in nanoseconds since their profile's. FILE is their configuration, as JSON: "token", and "otlp" and
// "debug" as in a collector's own file. The rest of a collector, which only joins them, takes as long again to compile.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	metrics "go.opentelemetry.io/otel/metric/noop"
	traces "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/extension/extensionauth"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/xreceiver"
)

// host gives the receiver the one extension that there is.
type host map[component.ID]component.Component

func (h host) GetExtensions() map[component.ID]component.Component { return h }

type tokenServer struct {
	component.StartFunc
	component.ShutdownFunc
	extensionauth.ServerAuthenticateFunc
}

func newToken(token string) component.Component {
	check := func(ctx context.Context, headers map[string][]string) (context.Context, error) {
		got := headers["Authorization"]
		if len(got) != 1 || got[0] != "Bearer "+token {
			return ctx, errors.New("that is not the token")
		}
		return ctx, nil
	}
	return &tokenServer{ServerAuthenticateFunc: check}
}

// configured returns the defaults of a component, with what the file sets.
func configured(defaults component.Config, set map[string]any) (component.Config, error) {
	return defaults, confmap.NewFromStringMap(set).Unmarshal(defaults)
}

func printTimes(all pprofile.Profiles) {
	for _, resource := range all.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			for _, profile := range scope.Profiles().All() {
				for _, sample := range profile.Samples().All() {
					times, start := sample.TimestampsUnixNano(), uint64(profile.Time())
					if n := times.Len(); n > 0 {
						fmt.Println("times", n, times.At(0)-start, times.At(n-1)-start)
					}
				}
			}
		}
	}
}

func run(file string) error {
	var config struct {
		Token       string
		Otlp, Debug map[string]any
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	in := otlpreceiver.NewFactory().(xreceiver.Factory)
	out := debugexporter.NewFactory().(xexporter.Factory)
	inConfig, err1 := configured(in.CreateDefaultConfig(), config.Otlp)
	outConfig, err2 := configured(out.CreateDefaultConfig(), config.Debug)
	logger, err3 := zap.NewDevelopment()
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	ctx := context.Background()
	telemetry := component.TelemetrySettings{Logger: logger, TracerProvider: traces.NewTracerProvider(),
		MeterProvider: metrics.NewMeterProvider(), Resource: pcommon.NewResource()}
	printer, err := out.CreateProfiles(ctx,
		exporter.Settings{ID: component.NewID(out.Type()), TelemetrySettings: telemetry}, outConfig)
	if err != nil {
		return err
	}
	both, err := xconsumer.NewProfiles(func(ctx context.Context, all pprofile.Profiles) error {
		printTimes(all)
		return printer.ConsumeProfiles(ctx, all)
	})
	if err != nil {
		return err
	}
	server, err := in.CreateProfiles(ctx,
		receiver.Settings{ID: component.NewID(in.Type()), TelemetrySettings: telemetry}, inConfig, both)
	if err != nil {
		return err
	}
	extensions := host{component.MustNewID("token"): newToken(config.Token)}
	if err := errors.Join(printer.Start(ctx, extensions), server.Start(ctx, extensions)); err != nil {
		return err
	}
	fmt.Println("ready")
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM)
	<-ended
	return errors.Join(server.Shutdown(ctx), printer.Shutdown(ctx))
}

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
