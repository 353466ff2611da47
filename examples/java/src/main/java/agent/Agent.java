package agent;

import agent.Gateway.Action;
import agent.Gateway.DeniedException;
import io.grpc.StatusRuntimeException;
import java.util.Map;

/**
 * A support agent in Java. Each refund is checked before it is made, and people decide about a large one.
 *
 * <pre>
 * SVC_POLICY_PATH=examples/policies/support-agent.yaml npm start                    # in one terminal
 * SVC_API_KEY=svc_... mvn -q -f examples/java/pom.xml compile exec:java             # in another, with the key it has shown
 * </pre>
 */
public final class Agent {
  private Agent() {}

  public static void main(String[] args) throws Exception {
    String address = setting("SVC_GRPC_ADDR", "127.0.0.1:50051");
    try (Gateway gateway = new Gateway(address, setting("SVC_AGENT", "acme/support/desk-java"), setting("SVC_API_KEY", ""))) {
      attempt(gateway, new Action("llm.call", "large-model", Map.of(), 9), "the model answers");
      for (int amount : new int[] {30, 100}) {
        Map<String, Object> order = Map.of("id", "o-17", "total_usd", 120, "currency", "USD");
        Map<String, Object> attributes = Map.of("order", order, "amount_usd", amount);
        if (amount > 50) {
          System.out.println("waiting for a person to decide about " + amount + " USD");
        }
        attempt(gateway, new Action("tool.call", "payments.refund", attributes, 0), "refunded " + amount + " of o-17");
      }
    } catch (StatusRuntimeException e) {
      System.err.println("nothing more is done: " + e.getMessage());
      System.exit(1);
    }
  }

  /** Says what is denied, and goes on. Anything else ends the work. */
  private static void attempt(Gateway gateway, Action action, String done) throws Exception {
    try {
      System.out.println(gateway.run(action, () -> done));
    } catch (DeniedException denied) {
      System.out.println("DENIED " + denied.reason);
      if (!denied.remedy.isEmpty()) {
        System.out.println("INSTEAD " + denied.remedy);
      }
    }
  }

  private static String setting(String name, String otherwise) {
    String value = System.getenv(name);
    return value == null || value.isEmpty() ? otherwise : value;
  }
}
