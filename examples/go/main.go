// A support agent in Go. Each refund is checked before it is made, and people decide about a large one.
//
//	SVC_POLICY_PATH=examples/policies/support-agent.yaml npm start    # in one terminal
//	SVC_API_KEY=svc_... go run -C examples/go .                       # in another, with the key it has shown
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"agent/gateway"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := work(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func work(ctx context.Context) error {
	address := cmp.Or(os.Getenv("SVC_GRPC_ADDR"), "127.0.0.1:50051")
	agent := cmp.Or(os.Getenv("SVC_AGENT"), "acme/support/desk-go")
	client, err := gateway.Connect(ctx, address, agent, os.Getenv("SVC_API_KEY"))
	if err != nil {
		return err
	}
	defer client.Close()

	model := gateway.Action{Name: "llm.call", Resource: "large-model", EstimatedCostUSD: 9}
	if err := attempt(ctx, client, model, "the model answers"); err != nil {
		return err
	}
	for _, amount := range []float64{30, 100} {
		order := map[string]any{"id": "o-17", "total_usd": 120, "currency": "USD"}
		refund := gateway.Action{
			Name: "tool.call", Resource: "payments.refund", Attributes: map[string]any{"order": order, "amount_usd": amount},
		}
		if amount > 50 {
			fmt.Printf("waiting for a person to decide about %v USD\n", amount)
		}
		if err := attempt(ctx, client, refund, fmt.Sprintf("refunded %v of o-17", amount)); err != nil {
			return err
		}
	}
	return nil
}

// attempt says what is denied, and goes on. Any other error ends the work.
func attempt(ctx context.Context, client *gateway.Client, action gateway.Action, done string) error {
	err := client.Run(ctx, action, func(context.Context) error {
		fmt.Println(done)
		return nil
	})
	var denied *gateway.DeniedError
	if errors.As(err, &denied) {
		fmt.Println("DENIED", denied.Reason)
		if denied.Remedy != "" {
			fmt.Println("INSTEAD", denied.Remedy)
		}
		return nil
	}
	return err
}
