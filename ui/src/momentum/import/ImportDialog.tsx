import {
  Anchor,
  Button,
  Checkbox,
  Code,
  FileButton,
  Group,
  Modal,
  ScrollArea,
  Stack,
  Table,
  Text,
} from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { plural } from '../../parts/plural';
import { ProblemNote } from '../../parts/ProblemNote';
import { showSuccess } from '../../parts/toasts';
import { importCsv } from '../api/call';
import type { ImportResult } from '../api/types';
import { Note } from '../parts/Note';
import { Glyph } from '../parts/Glyph';

const COLUMNS = 'account,text,scheduled_at,zone,media,article_url,labels';
const EXAMPLE = `${COLUMNS}\nAda Brandt,"Good morning, Berlin",2027-01-11T09:00,Europe/Berlin,,,launch\n`;

/** Posts from a CSV file: first a check of every row, then the import. */
export function ImportDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [file, setFile] = useState<{ name: string; text: string } | null>(null);
  const [checked, setChecked] = useState<ImportResult | null>(null);
  const [partial, setPartial] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);

  const attempt = async (action: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await action();
    } catch (caught) {
      setError(caught);
    } finally {
      setBusy(false);
    }
  };
  const check = (chosen: File | null) => {
    if (chosen === null) return;
    void attempt(async () => {
      const text = await chosen.text();
      setFile({ name: chosen.name, text });
      setChecked(null);
      setChecked(await importCsv(text, { dry_run: true }));
    });
  };
  const run = () =>
    void attempt(async () => {
      const { created } = await importCsv(file?.text ?? '', { partial });
      showSuccess(`${plural(created, 'post')} imported`);
      await client.invalidateQueries();
      onClose();
    });

  const good = checked?.rows.filter((row) => row.ok).length ?? 0;
  const bad = (checked?.rows.length ?? 0) - good;
  return (
    <Modal
      opened
      onClose={onClose}
      size="lg"
      title="Import posts"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          A CSV file with the columns <Code>{COLUMNS.replaceAll(',', ', ')}</Code>. Rows without a time become
          drafts. Nothing is stored until every row is checked.{' '}
          <Anchor size="sm" href={`data:text/csv,${encodeURIComponent(EXAMPLE)}`} download="posts.csv">
            Download an example
          </Anchor>
        </Text>
        <Group>
          <FileButton onChange={check} accept="text/csv,.csv">
            {(props) => (
              <Button
                {...props}
                variant="default"
                leftSection={<Glyph name="upload" />}
                loading={busy && !checked}
              >
                {file ? 'Choose another file' : 'Choose a file'}
              </Button>
            )}
          </FileButton>
          {file && <Text size="sm">{file.name}</Text>}
        </Group>
        {error !== null && <ProblemNote error={error} title="The file was not imported" />}
        {checked && (
          <Note tone={bad ? 'warn' : 'good'}>
            {plural(good, 'row')} can be imported{bad > 0 && `, ${plural(bad, 'row')} cannot`}.
          </Note>
        )}
        {checked && bad > 0 && (
          <>
            <ScrollArea.Autosize mah={260} viewportProps={{ tabIndex: 0 }}>
              <Table aria-label="Problems" stickyHeader>
                <Table.Thead>
                  <Table.Tr>
                    <Table.Th>Line</Table.Th>
                    <Table.Th>Column</Table.Th>
                    <Table.Th>Problem</Table.Th>
                  </Table.Tr>
                </Table.Thead>
                <Table.Tbody>
                  {checked.rows.flatMap((row) =>
                    row.problems.map((problem) => (
                      <Table.Tr key={`${row.line} ${problem.field} ${problem.code}`}>
                        <Table.Td>{row.line}</Table.Td>
                        <Table.Td>
                          <Code>{problem.field}</Code>
                        </Table.Td>
                        <Table.Td>{problem.message}</Table.Td>
                      </Table.Tr>
                    )),
                  )}
                </Table.Tbody>
              </Table>
            </ScrollArea.Autosize>
            <Checkbox
              label="Import the good rows and leave out the others"
              checked={partial}
              onChange={(event) => setPartial(event.currentTarget.checked)}
            />
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            onClick={run}
            disabled={good === 0 || (bad > 0 && !partial)}
            loading={busy && checked !== null}
          >
            {good > 0 ? `Import ${plural(good, 'post')}` : 'Import'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
