import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.analysis.common.CommonAnalysisPlugin;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.index.mapper.MapperExtrasPlugin;
import org.opensearch.index.reindex.ReindexPlugin;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** A node of OpenSearch until SIGTERM. Arguments are its settings: name=value. Unlike OpenSearch's own
    start it runs as root, too. */
public class OpenSearchNode extends Node {
    OpenSearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class, CommonAnalysisPlugin.class,
            MapperExtrasPlugin.class, ReindexPlugin.class), false);
    }

    public static void main(String[] arguments) throws Exception {
        Settings.Builder settings = Settings.builder();
        for (String argument : arguments) {
            int at = argument.indexOf('=');
            settings.put(argument.substring(0, at), argument.substring(at + 1));
        }
        OpenSearchNode node = new OpenSearchNode(
            InternalSettingsPreparer.prepareEnvironment(settings.build(), Map.of(), null, () -> "node"));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (Exception error) {
                error.printStackTrace();
            }
        }));
        node.start();
        new CountDownLatch(1).await();
    }
}
