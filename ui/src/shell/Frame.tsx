import { AppShell, Burger, Group, Loader, Center } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import { Suspense, type ComponentType } from 'react';
import { Link, Route, Switch, useLocation } from 'wouter';
import { Logo } from '../parts/Logo';
import { CommandPalette } from './CommandPalette';
import { ErrorBoundary } from './ErrorBoundary';
import { NotFound } from './NotFound';
import { SearchButton } from './SearchButton';
import classes from './Shell.module.css';
import { ShortcutHelp, type ShortcutKeys } from './ShortcutHelp';
import { useShortcuts, type KeyActions } from './useShortcuts';

export type PageRoutes = ReadonlyArray<[path: string, page: ComponentType<{ params: { id: string } }>]>;

interface FrameProps {
  product: string;
  /** The name of the first page. */
  home: string;
  routes: PageRoutes;
  Navigation: ComponentType<{ onNavigate: () => void }>;
  /** The controls at the right of the header. */
  Tools: ComponentType<{ onHelp: () => void }>;
  Palette: ComponentType<{ onClose: () => void }>;
  /** The list of shortcuts for the help. */
  keys: ShortcutKeys;
  /** The pages by the key to press after `g`. */
  goTo: Readonly<Record<string, string>>;
  actions: KeyActions;
}

/** wouter has decoded the address by `decodeURI`: a `%` without a code is a character of the name. */
const decoded = (segment: string): string => decodeURIComponent(segment.replace(/%(?![0-9a-f]{2})/gi, '%25'));

/** The frame around every page: header, navigation, command palette, shortcuts. */
export function Frame(props: FrameProps) {
  const { product, home, routes, Navigation, Tools, Palette, keys, goTo, actions } = props;
  const [menu, { toggle, close }] = useDisclosure(false);
  const [palette, paletteActions] = useDisclosure(false);
  const [help, helpActions] = useDisclosure(false);
  const [address] = useLocation();
  useShortcuts({ palette: paletteActions.open, help: helpActions.open, goTo, actions });
  useHotkeys([['Escape', close]]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: !menu } }}
      padding={{ base: 'sm', sm: 'lg' }}
      classNames={classes}
    >
      <a
        href="#content"
        className={classes.skip}
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        Skip to content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap">
            <Burger opened={menu} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Pages" />
            <Link href="/" className={classes.home} aria-label={`${product}, ${home.toLowerCase()}`}>
              <Logo name={product} />
            </Link>
          </Group>
          <Group gap={6} wrap="nowrap">
            <SearchButton onClick={paletteActions.open} />
            <Tools onHelp={helpActions.open} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" aria-label="Pages">
        <Navigation onNavigate={close} />
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        <ErrorBoundary key={address}>
          <Suspense
            fallback={
              <Center h={240}>
                <Loader aria-label="Loading" />
              </Center>
            }
          >
            <Switch>
              {routes.map(([path, Page]) => (
                <Route key={path} path={path}>
                  {(params) => <Page params={{ id: decoded((params as { id?: string }).id ?? '') }} />}
                </Route>
              ))}
              <Route>
                <NotFound home={home} />
              </Route>
            </Switch>
          </Suspense>
        </ErrorBoundary>
      </AppShell.Main>
      <CommandPalette opened={palette} onClose={paletteActions.close}>
        <Palette onClose={paletteActions.close} />
      </CommandPalette>
      <ShortcutHelp opened={help} onClose={helpActions.close} keys={keys} />
    </AppShell>
  );
}
